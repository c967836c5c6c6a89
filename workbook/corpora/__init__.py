"""Text to learn from: four corpora, each a train and a validation file of documents (chapter 2).

Open `corpora` first: `corpora.path("stories")` makes or finds a file, `documents` reads it.
`stories` is the grammar that writes children's stories, `docstrings` the prose of the installed
libraries, `download` gets the two large corpora from the Hugging Face Hub, and `fluency` measures
how well a text reads. Nothing here needs torch.
"""
