"""The method by which a language model continues texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from .._arguments import checked
from ..text import Tokenizer
from . import generation
from .checks import require_whole
from .language_options import LanguageModelOptions

__all__ = ["TextGenerator"]


class TextGenerator:
    """The part of :class:`LanguageModel` that continues prompts."""

    #: Turns texts into tokens for :meth:`generate`; None: prompts are token numbers.
    tokenizer: Tokenizer | None
    options: LanguageModelOptions

    @checked(name="LanguageModel")
    def generate(
        self,
        prompts: str | Sequence | Tensor,
        max_new_tokens: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        eos: int | Sequence[int] | None = None,
        stream: bool = False,
        caches: bool = True,
    ) -> str | list | Tensor | Iterator:
        """Continues prompts by up to ``max_new_tokens`` tokens each.

        The result has the form of the prompts, and begins with them:

        - a text -> a text; a list of texts -> a list of texts (through :attr:`tokenizer`);
        - a list of token numbers -> such a list; a list of such lists -> a list of such lists;
        - int64 [T] or [B, T] -> int64 [T'] or [B, T'] on the same device. A row that ended early
          repeats its last token.

        Prompts may have different lengths, and each continues as if it were alone (to rounding).
        They share their passes with caches while they stay within the context, unless ``sparse`` is
        "linear". Elsewhere the prompts of one length share their passes.

        A token is drawn from softmax(logits / temperature) among the ``top_k`` likeliest, and of
        those among the likeliest that together reach the probability ``top_p``. Prompt number r
        draws with ``seed`` + r, and its n-th draw depends on that number and n alone. Equal seeds
        therefore give equal tokens. ``nsimplex lm sample`` draws in the same way, and its options
        have the same defaults.

        Args:
            prompts: see above. An empty text begins as texts of the training begin.
            temperature: 0: always the likeliest token; of equals the smallest.
            top_k, top_p: None: all tokens.
            seed: from 0 to 2^64 - 1; None: drawn from torch's generator.
            eos: a token, or several, that end a prompt's continuation. It is the last token of the
                result; a text leaves it out.
            stream: return an iterator over the steps: the new token of a prompt, or a list with one
                entry per prompt (None after its end). Texts come in pieces, and joined pieces are
                the new text.
            caches: whether keys and values of earlier tokens are kept (:meth:`make_cache`).
                Otherwise every step is a pass over the last ``context`` tokens. The results are
                equal, to rounding, as long as prompt and continuation fit into the context.

        Raises:
            ValueError, TypeError: an argument that does not fit, in one line.
        """
        vocabulary = self.options.vocabulary
        given = generation.prompts_of(prompts, self.tokenizer, vocabulary)
        require_whole("[LanguageModel] ", least=0, max_new_tokens=max_new_tokens)
        if seed is None:
            seed = int(torch.randint(2**62, ()))
        require_whole("[LanguageModel] ", least=0, most=2**64 - 1, seed=seed)
        how = generation.sampling(temperature, top_k, top_p, eos, vocabulary)
        tokens = generation.steps(self, given.rows, max_new_tokens, how, seed, caches)
        finish = generation.stream if stream else generation.whole
        return finish(given, self.tokenizer, tokens, how.eos)
