import numpy as np, torch, torch.nn as nn
dev='cuda' if torch.cuda.is_available() else 'cpu'
m=nn.LSTM(32,64,2,batch_first=True,dropout=.2).to(dev); h=nn.Linear(64,5).to(dev)
opt=torch.optim.RMSprop(list(m.parameters())+list(h.parameters()))
losses=[]
for i in range(60):
    x=torch.from_numpy(np.random.randn(16,40,32).astype('float32')).to(dev); y=torch.tensor(np.random.randint(0,5,16)).to(dev)
    o,(hn,c)=m(x); p=h(o[:,-1]); l=nn.functional.nll_loss(nn.functional.log_softmax(p,-1),y)
    opt.zero_grad(); l.backward(); opt.step()
    losses.append(l.detach().cpu().numpy()); pred=p.argmax(-1).cpu().numpy(); acc=(pred==y.cpu().numpy()).mean()
    print(i, np.mean(losses), acc, p.softmax(-1).max().item())
    if np.isnan(losses[-1]): raise SystemExit("nan")
