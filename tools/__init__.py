"""What the project needs beside the package: the docs."""
