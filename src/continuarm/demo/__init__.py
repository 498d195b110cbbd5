"""A demonstration: the service, and a chain of supermarkets that asks it for prices."""
