"""Contextual routing policy trained with REINFORCE; progress goes to a metrics service."""
import json
import socket
import threading
import time

import torch
from torch import nn
from torch.distributions import Categorical


class MetricsService(threading.Thread):
    """Stand-in for the collector that normally runs on another host."""

    def __init__(self, latency=0.012):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.latency = latency
        self.received = 0

    def run(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rwb") as stream:
            for _ in stream:
                self.received += 1
                time.sleep(self.latency)
                stream.write(b"ok\n")
                stream.flush()


class MetricsClient:
    def __init__(self, address, run_name):
        self.stream = socket.create_connection(address).makefile("rwb")
        self.run_name = run_name

    def report(self, step, **values):
        message = {"run": self.run_name, "step": step, **values}
        self.stream.write(json.dumps(message).encode() + b"\n")
        self.stream.flush()
        reply = self.stream.readline()
        if reply != b"ok\n":
            raise RuntimeError("metrics service refused the report")


class Network:
    """Simulated routes whose delay depends on the traffic context."""

    def __init__(self, routes, context):
        self.weights = torch.randn(context, routes) / context**0.5
        self.bias = torch.randn(routes) * 0.2
        self.context = context

    def observe(self, n):
        return torch.randn(n, self.context)

    def reward(self, context, route):
        delay = (context @ self.weights + self.bias).gather(1, route.unsqueeze(1)).squeeze(1)
        return -delay + 0.1 * torch.randn(len(context))


class RoutePolicy(nn.Module):
    def __init__(self, context, routes, width=384):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(context, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.logits = nn.Linear(width, routes)

    def forward(self, context):
        return Categorical(logits=self.logits(self.body(context)), validate_args=False)


class Agent:
    def __init__(self, network, routes):
        self.network = network
        self.policy = RoutePolicy(network.context, routes)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4, fused=True)
        self.baseline = torch.zeros(())

    def improve(self, n):
        context = self.network.observe(n)
        choice = self.policy(context)
        route = choice.sample()
        reward = self.network.reward(context, route)
        advantage = reward - self.baseline
        loss = -(choice.log_prob(route) * advantage).mean() - 0.01 * choice.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.baseline.lerp_(reward.mean(), 0.05)
        return loss.detach(), reward.mean()


def main(steps=20_000, routes=20, context=48, batch=512):
    torch.manual_seed(44)
    service = MetricsService()
    service.start()
    client = MetricsClient(service.address, "routing")
    agent = Agent(Network(routes, context), routes)
    for step in range(steps):
        loss, reward = agent.improve(batch)
        client.report(step, loss=round(loss.item(), 5), reward=round(reward.item(), 5))
        if step % 200 == 0:
            print(f"step {step} mean reward {reward.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
