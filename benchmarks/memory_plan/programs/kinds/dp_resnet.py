import argparse,os,time,torch,torch.nn as nn
p=argparse.ArgumentParser(); p.add_argument("--gpu",default="0"); a=p.parse_args()
os.environ.setdefault("CUDA_VISIBLE_DEVICES",a.gpu)
class B(nn.Module):
    def __init__(s,i,o,st=1):
        super().__init__(); s.c1=nn.Conv2d(i,o,3,st,1,bias=False); s.b1=nn.BatchNorm2d(o); s.c2=nn.Conv2d(o,o,3,1,1,bias=False); s.b2=nn.BatchNorm2d(o); s.d=nn.Sequential(nn.Conv2d(i,o,1,st,bias=False),nn.BatchNorm2d(o)) if st!=1 or i!=o else None
    def forward(s,x):
        r=x if s.d is None else s.d(x); x=torch.relu(s.b1(s.c1(x))); return torch.relu(s.b2(s.c2(x))+r)
net=nn.Sequential(nn.Conv2d(3,64,7,2,3),nn.BatchNorm2d(64),nn.ReLU(True),nn.MaxPool2d(3,2,1),B(64,64),B(64,64),B(64,128,2),B(128,128),nn.AdaptiveAvgPool2d(1),nn.Flatten(),nn.Linear(128,1000))
if torch.cuda.device_count()>1: net=nn.DataParallel(net)
net=nn.DataParallel(net).cuda() if False else net.cuda().to(memory_format=torch.channels_last)
opt=torch.optim.SGD(net.parameters(),.1,momentum=.9,weight_decay=1e-4,nesterov=True)
crit=nn.CrossEntropyLoss(label_smoothing=.1).cuda()
s=torch.cuda.Event(enable_timing=True); e=torch.cuda.Event(enable_timing=True)
def accuracy(out,t,topk=(1,5)):
    with torch.no_grad():
        _,pred=out.topk(max(topk),1,True,True); pred=pred.t(); c=pred.eq(t.view(1,-1).expand_as(pred)); return [c[:k].reshape(-1).float().sum(0,keepdim=True).mul_(100./t.size(0)) for k in topk]
for i in range(100):
    s.record(); x=torch.randn(16,3,112,112).cuda().to(memory_format=torch.channels_last); y=torch.randint(0,1000,(16,)).cuda()
    o=net(x); l=crit(o,y); a1,a5=accuracy(o,y); opt.zero_grad(); l.backward(); opt.step(); e.record(); torch.cuda.synchronize()
    print(i,l.item(),a1.item(),a5[0].item(),s.elapsed_time(e))
