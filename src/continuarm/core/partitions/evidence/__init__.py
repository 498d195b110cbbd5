"""What a tree that splits by evidence is made of, one idea per file."""
