"""The original WebShop's module names; the environment is `webshop.legacy`."""
