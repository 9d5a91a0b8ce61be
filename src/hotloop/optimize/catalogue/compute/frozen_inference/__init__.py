"""frozen_inference: a model that is not trained, without what only training needs."""
