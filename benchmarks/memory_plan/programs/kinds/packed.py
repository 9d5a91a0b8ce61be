import torch,torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence,pad_packed_sequence
e=nn.Embedding(1000,64).cuda(); m=nn.LSTM(64,128,batch_first=True,bidirectional=True).cuda(); h=nn.Linear(256,7).cuda()
o=torch.optim.Adam([*e.parameters(),*m.parameters(),*h.parameters()])
for i in range(50):
    n=torch.randint(5,60,(16,)).sort(descending=True).values; x=torch.randint(1,1000,(16,60)).cuda()
    out,_=pad_packed_sequence(m(pack_padded_sequence(e(x),n.cpu(),batch_first=True))[0],batch_first=True)
    l=nn.functional.cross_entropy(h(out.mean(1)),torch.randint(0,7,(16,)).cuda()); o.zero_grad(); l.backward(); o.step(); print(l.item())
