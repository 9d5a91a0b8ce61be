import torch,torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
torch.manual_seed(0)
data=[torch.randint(1,1000,(int(n),)) for n in torch.randint(5,60,(256,))]+[torch.randint(1,1000,(2000,))]
data=sorted(data,key=len)
dl=DataLoader(data,batch_size=8,collate_fn=lambda b: pad_sequence(b,batch_first=True))
e=nn.Embedding(1000,64).cuda(); m=nn.GRU(64,128,batch_first=True).cuda(); h=nn.Linear(128,1000).cuda()
o=torch.optim.Adam([*e.parameters(),*m.parameters(),*h.parameters()])
for ep in range(5):
    for b in dl:
        b=b.cuda(); out,_=m(e(b)); l=nn.functional.cross_entropy(h(out)[:,:-1].reshape(-1,1000),b[:,1:].reshape(-1),ignore_index=0); o.zero_grad(); l.backward(); o.step()
