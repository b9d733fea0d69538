"""Device code only: what runs inside a core or a program. Host logic lives in tri_apsp.engines."""
