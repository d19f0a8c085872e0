"""What is inside the boxes: networks, averages, the feature store."""
