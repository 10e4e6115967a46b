"""Programs that look after the repository; no distribution contains them."""
