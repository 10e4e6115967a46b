"""What has been spent: frozen events, what they cost, and a store that keeps them safe from crashes and races."""
