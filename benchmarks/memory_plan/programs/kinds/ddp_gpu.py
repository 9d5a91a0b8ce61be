import os,torch,torch.distributed as dist,torch.nn as nn
os.environ.setdefault("MASTER_ADDR","127.0.0.1"); os.environ.setdefault("MASTER_PORT","29511"); os.environ.setdefault("RANK","0"); os.environ.setdefault("WORLD_SIZE","1"); os.environ.setdefault("LOCAL_RANK","0")
dist.init_process_group("nccl"); lr=int(os.environ["LOCAL_RANK"]); torch.cuda.set_device(lr)
m=nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(512,2048),nn.ReLU(),nn.Linear(2048,512)).to(lr),device_ids=[lr])
o=torch.optim.AdamW(m.parameters())
for i in range(50):
    x=torch.randn(32,512,device=lr); l=m(x).square().mean(); o.zero_grad(); l.backward(); o.step()
    if dist.get_rank()==0: print(i,l.item())
dist.destroy_process_group()
