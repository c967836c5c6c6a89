"""What all tests share."""

from hypothesis import settings

# A first call may compile or fill a cache; how long a machine takes says nothing about the claim.
settings.register_profile("workbook", deadline=None)
settings.load_profile("workbook")
