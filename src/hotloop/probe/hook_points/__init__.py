"""The hook points: fetch, transfer, forward, backward, communication, optimizer step."""
