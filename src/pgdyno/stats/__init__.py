"""Statistics: arrays in, frozen records out. Pure; numpy and scipy only."""
