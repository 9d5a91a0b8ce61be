"""What is packed: a folder of files, or a Dataset object, as samples of bytes in a fixed order."""
