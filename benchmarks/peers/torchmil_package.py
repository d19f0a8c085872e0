"""torchmil 1.0.2: attention pooling, trained as its first page does (Adam, 1e-4, ten epochs, batches of four)."""

import measuring


def fit_abmil(tables, y):
    import torch
    from tensordict import TensorDict
    from torch.utils.data import DataLoader
    from torchmil.data import collate_fn
    from torchmil.models import ABMIL
    from torchmil.utils import Trainer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = [
        TensorDict({"X": torch.as_tensor(table).float(), "Y": torch.as_tensor(int(label))})
        for table, label in zip(tables, y)
    ]
    loader = DataLoader(data, batch_size=4, shuffle=True, collate_fn=collate_fn)
    model = ABMIL(in_shape=(tables[0].shape[1],), criterion=torch.nn.BCEWithLogitsLoss())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    trainer = Trainer(model, optimizer, device="cpu", disable_pbar=True, verbose=False)
    trainer.train(10, loader)

    def predict(bags):
        with torch.no_grad():
            logits = [model.predict(torch.as_tensor(bag).float()[None], return_inst_pred=False) for bag in bags]
        return [int(value.item() > 0) for value in logits]

    return predict


METHODS = {"ABMIL": fit_abmil}

if __name__ == "__main__":
    from importlib.metadata import version

    measuring.main(METHODS, lambda: version("torchmil"))
