"""Growing and pruning single trees."""
