/* NICs, tags, memory, VIs and completion queues: made, queried, changed, destroyed. */
#include "calls.h"

/* Objects are made, queried, changed and destroyed; objects in use stay. */
void objects(void)
{
	VIP_NIC_HANDLE nic, again;
	VIP_NIC_ATTRIBUTES limits, same;
	VIP_PROTECTION_HANDLE ptag, other;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi, second;
	VIP_MEM_HANDLE handle;
	VIP_VI_STATE state;
	VIP_BOOLEAN sends, receives;
	static char memory[8192];

	MUST(VipOpenNic(device, &nic));
	MUST(VipQueryNic(nic, &limits));
	WANT(limits.NicAddressLen == 6 && limits.LocalNicAddress && limits.ThreadSafe);
	WANT(limits.MaxVI >= 64 && limits.MaxDescriptorsPerQueue >= 1024 && limits.MaxSegmentsPerDesc >= 252);
	WANT(limits.MaxTransferSize >= 32768 && limits.MaxDiscriminatorLen >= 16 && limits.NativeMTU > 0);
	WANT(limits.ReliabilityLevelSupport == 7 && limits.RDMAReadSupport == 6);
	WANT(strncmp(limits.Name, device, strlen(device)) == 0);

	/* A second opening is another end point of the same node. */
	MUST(VipOpenNic(device, &again));
	MUST(VipQueryNic(again, &same));
	WANT(memcmp(limits.LocalNicAddress, same.LocalNicAddress, 4) == 0);
	WANT(memcmp(limits.LocalNicAddress, same.LocalNicAddress, 6) != 0);
	MUST(VipCloseNic(again));

	MUST(VipCreatePtag(nic, &ptag));
	MUST(VipCreatePtag(nic, &other));
	WANT(ptag != other);
	VIP_MEM_ATTRIBUTES memory_attributes = { ptag, VIP_TRUE, VIP_FALSE }, known;
	MUST(VipRegisterMem(nic, memory, sizeof memory, &memory_attributes, &handle));
	WANT(handle != 0);
	MUST(VipQueryMem(nic, memory + 100, handle, &known));
	WANT(known.Ptag == ptag && known.EnableRdmaWrite && !known.EnableRdmaRead);
	memory_attributes.Ptag = other;
	memory_attributes.EnableRdmaRead = VIP_TRUE;
	MUST(VipSetMemAttributes(nic, memory, handle, &memory_attributes));
	MUST(VipQueryMem(nic, memory, handle, &known));
	WANT(known.Ptag == other && known.EnableRdmaRead);
	EXPECT(VipDestroyPtag(nic, other), VIP_ERROR_RESOURCE);
	MUST(VipDestroyPtag(nic, ptag));
	EXPECT(VipDestroyPtag(nic, ptag), VIP_INVALID_PTAG);

	MUST(VipCreateCQ(nic, 100, &cq));
	MUST(VipResizeCQ(cq, 1000));
	VIP_VI_ATTRIBUTES attributes = { VIP_SERVICE_RELIABLE_DELIVERY, 65536, NULL, other, VIP_TRUE, VIP_TRUE }, asked;
	MUST(VipCreateVi(nic, &attributes, cq, cq, &vi));
	MUST(VipCreateVi(nic, &attributes, NULL, cq, &second));
	EXPECT(VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
	MUST(VipQueryVi(vi, &state, &asked, &sends, &receives));
	WANT(state == VIP_STATE_IDLE && sends && receives);
	WANT(asked.ReliabilityLevel == attributes.ReliabilityLevel && asked.MaxTransferSize == 65536 && asked.Ptag == other);
	attributes.MaxTransferSize = 4096;
	MUST(VipSetViAttributes(vi, &attributes));
	MUST(VipQueryVi(vi, &state, &asked, &sends, &receives));
	WANT(asked.MaxTransferSize == 4096);
	MUST(VipDestroyVi(vi));
	EXPECT(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
	MUST(VipDestroyVi(second));
	MUST(VipDestroyCQ(cq));
	EXPECT(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
	MUST(VipDeregisterMem(nic, memory, handle));
	EXPECT(VipDeregisterMem(nic, memory, handle), VIP_INVALID_PARAMETER);
	MUST(VipDestroyPtag(nic, other));
	/* The most objects of each kind, twice: destroyed ones free their place. */
	VIP_VI_HANDLE *all = calloc(limits.MaxVI, sizeof *all);
	attributes.Ptag = NULL;
	for (int round = 0; round < 2; round++) {
		for (VIP_ULONG i = 0; i < limits.MaxVI; i++)
			MUST(VipCreateVi(nic, &attributes, NULL, NULL, &all[i]));
		EXPECT(VipCreateVi(nic, &attributes, NULL, NULL, &vi), VIP_ERROR_RESOURCE);
		for (VIP_ULONG i = 0; i < limits.MaxVI; i++)
			MUST(VipDestroyVi(all[i]));
	}
	/* A work queue and a NIC take exactly as many descriptors as their limit. */
	static VIP_DESCRIPTOR receive __attribute__((aligned(64)));
	VIP_MEM_ATTRIBUTES no_tag = { NULL, VIP_FALSE, VIP_FALSE };
	VIP_ULONG posted = 0;
	MUST(VipRegisterMem(nic, &receive, sizeof receive, &no_tag, &handle));
	while (posted < limits.MaxCQEntries) {
		MUST(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
		for (VIP_ULONG i = 0; i < limits.MaxDescriptorsPerQueue; i++, posted++)
			MUST(VipPostRecv(vi, &receive, handle));
		EXPECT(VipPostRecv(vi, &receive, handle), VIP_ERROR_RESOURCE);
	}
	MUST(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
	EXPECT(VipPostRecv(vi, &receive, handle), VIP_ERROR_RESOURCE);
	EXPECT(VipDeregisterMem(nic, &receive, handle), VIP_ERROR_RESOURCE);
	free(all);
	EXPECT(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, memory), VIP_ERROR_NOT_SUPPORTED);
	EXPECT(VipQuerySystemManagementInfo(nic, 77, memory), VIP_INVALID_PARAMETER);
	MUST(VipCloseNic(nic));
	EXPECT(VipCloseNic(nic), VIP_INVALID_PARAMETER);
	EXPECT(VipQueryNic(nic, &limits), VIP_INVALID_PARAMETER);
}
