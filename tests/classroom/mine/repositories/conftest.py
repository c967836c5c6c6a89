"""These checkouts are read and run by tests; nothing in them is a test of the workbook's own."""

collect_ignore_glob = ["*"]
