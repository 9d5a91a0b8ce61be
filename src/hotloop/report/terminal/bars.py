"""How phases are drawn on a terminal."""

from hotloop.model.observation import Phase

COLORS = {
    Phase.DATA: "yellow",
    Phase.TRANSFER: "magenta",
    Phase.FORWARD: "blue",
    Phase.BACKWARD: "cyan",
    Phase.COMMUNICATION: "red",
    Phase.OPTIMIZER: "green",
    Phase.OTHER: "white",
}
COLORS_BY_NAME = {phase.value: color for phase, color in COLORS.items()}
