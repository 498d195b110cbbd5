"""What a first day can cost, before it begins."""
