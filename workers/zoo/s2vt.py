"""S2VT: video to text with two LSTMs (Venugopalan et al., ICCV 2015), 87 million parameters."""

import torch
from torch import Tensor, nn


class S2VT(nn.Module):
    """(features of frames, words so far) to the logits of the next words.

    The first LSTM reads the frames, then nothing; the second reads the first beside
    nothing while frames come, then beside the words (figure 2).
    """

    def __init__(self, features: int, inner: int, width: int, tokens: int) -> None:
        super().__init__()
        self.frames = nn.Linear(features, inner)
        self.words = nn.Embedding(tokens, inner)
        self.video = nn.LSTM(inner, width, batch_first=True)
        self.text = nn.LSTM(inner + width, width, batch_first=True)
        self.predict = nn.Linear(width, tokens)

    def forward(self, frames: Tensor, words: Tensor) -> Tensor:
        seen, said = self.frames(frames), self.words(words)
        video, _ = self.video(torch.cat([seen, torch.zeros_like(said)], 1))
        told = torch.cat([torch.zeros_like(seen), said], 1)
        text, _ = self.text(torch.cat([told, video], 2))
        logits: Tensor = self.predict(text[:, frames.shape[1] :])
        return logits


def model(
    features: int = 4096, inner: int = 500, width: int = 1000, tokens: int = 46168
) -> nn.Module:
    return S2VT(features, inner, width, tokens)


def example(
    batch: int, frames: int = 60, words: int = 20, features: int = 4096, tokens: int = 46168
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    text = torch.randint(tokens, (batch, words + 1))
    return (torch.randn(batch, frames, features), text[:, :-1]), text[:, 1:]
