"""One file per version. A step that was shipped is never changed."""
