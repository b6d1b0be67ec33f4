// Prototypes of the driver entries that the guard hooks or calls, one line a signature: NAMES(...)
// are the exported symbols that share it (versions, per-thread default streams). Source: NVIDIA's
// CUDA Driver API documentation. Pure.
#pragma once

#include "guard/cuda/api.hpp"

extern "C" {
#define LOAM_CUDA_BOTH(name, suffix, ...) \
  CUresult name(__VA_ARGS__);             \
  CUresult name##suffix(__VA_ARGS__)

// Resolution.
CUresult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags);
CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                             int* status);
CUresult cuGetExportTable(const void** table, const loam::guard::cuda::Uuid* id);

// Memory.
CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width_bytes,
                            std::size_t height, unsigned element_bytes);
CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemAllocHost_v2(void** address, std::size_t bytes);
CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void* address);
LOAM_CUDA_BOTH(cuMemAllocAsync, _ptsz, CUdeviceptr* address, std::size_t bytes, CUstream stream);
LOAM_CUDA_BOTH(cuMemAllocFromPoolAsync, _ptsz, CUdeviceptr* address, std::size_t bytes,
               CUmemoryPool pool, CUstream stream);
LOAM_CUDA_BOTH(cuMemFreeAsync, _ptsz, CUdeviceptr address, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool* pool, const loam::guard::cuda::MemPoolProps* props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep_bytes);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value);
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const loam::guard::cuda::MemAllocationProp* prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes);
CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes,
                        const loam::guard::cuda::MemAccessDesc* access, std::size_t count);
CUresult cuMemGetAllocationGranularity(std::size_t* bytes,
                                       const loam::guard::cuda::MemAllocationProp* prop,
                                       int option);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address);
CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle, int type,
                                      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                        int type);
CUresult cuArrayCreate_v2(CUarray* array, const loam::guard::cuda::ArrayDescriptor* descriptor);
CUresult cuArray3DCreate_v2(CUarray* array, const loam::guard::cuda::Array3dDescriptor* descriptor);
CUresult cuArrayDestroy(CUarray array);
CUresult cuMipmappedArrayCreate(CUmipmappedArray* array,
                                const loam::guard::cuda::Array3dDescriptor* descriptor,
                                unsigned levels);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                const loam::guard::cuda::ExternalMemoryDesc* desc);
CUresult cuDestroyExternalMemory(CUexternalMemory memory);
CUresult cuIpcGetMemHandle(loam::guard::cuda::IpcMemHandle* handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle(CUdeviceptr* address, loam::guard::cuda::IpcMemHandle handle,
                            unsigned flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, loam::guard::cuda::IpcMemHandle handle,
                               unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle, const void* prop);

// Devices, contexts, modules.
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetName(char* name, int bytes, CUdevice device);
CUresult cuDeviceGetUuid(loam::guard::cuda::Uuid* uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(loam::guard::cuda::Uuid* uuid, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device);
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device);
CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total);
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address);
CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                CUdeviceptr address);
CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext* context, void* affinity, int count, unsigned flags,
                        CUdevice device);
CUresult cuCtxCreate_v4(CUcontext* context, void* params, unsigned flags, CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxAttach(CUcontext* context, unsigned flags);
CUresult cuCtxDetach(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent(CUcontext* context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxSynchronize();
CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuCtxSetLimit(int limit, std::size_t value);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active);
CUresult cuGreenCtxCreate(CUgreenCtx* context, void* desc, CUdevice device, unsigned flags);
CUresult cuGreenCtxDestroy(CUgreenCtx context);
CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green);
CUresult cuModuleLoad(CUmodule* module, const char* file);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, void* options,
                            void** values);
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, void* jit, void** jit_values,
                           unsigned jit_count, void* options, void** values, unsigned count);
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, void* jit, void** jit_values,
                               unsigned jit_count, void* options, void** values, unsigned count);
CUresult cuLibraryUnload(CUlibrary library);

// Streams, events, capture.
CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
LOAM_CUDA_BOTH(cuStreamGetCtx, _ptsz, CUstream stream, CUcontext* context);
LOAM_CUDA_BOTH(cuStreamSynchronize, _ptsz, CUstream stream);
LOAM_CUDA_BOTH(cuStreamQuery, _ptsz, CUstream stream);
LOAM_CUDA_BOTH(cuStreamWaitEvent, _ptsz, CUstream stream, CUevent event, unsigned flags);
LOAM_CUDA_BOTH(cuStreamBeginCapture, _ptsz, CUstream stream);
LOAM_CUDA_BOTH(cuStreamBeginCapture_v2, _ptsz, CUstream stream, int mode);
LOAM_CUDA_BOTH(cuStreamBeginCaptureToGraph, _ptsz, CUstream stream, CUgraph graph,
               const void* dependencies, const void* data, std::size_t count, int mode);
LOAM_CUDA_BOTH(cuStreamEndCapture, _ptsz, CUstream stream, CUgraph* graph);
LOAM_CUDA_BOTH(cuStreamIsCapturing, _ptsz, CUstream stream, int* status);
CUresult cuThreadExchangeStreamCaptureMode(int* mode);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
LOAM_CUDA_BOTH(cuEventRecord, _ptsz, CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to);
CUresult cuEventElapsedTime_v2(float* ms, CUevent from, CUevent to);

// Launches.
LOAM_CUDA_BOTH(cuLaunchKernel, _ptsz, CUfunction function, unsigned grid_x, unsigned grid_y,
               unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
               unsigned shared_bytes, CUstream stream, void** parameters, void** extra);
LOAM_CUDA_BOTH(cuLaunchKernelEx, _ptsz, const loam::guard::cuda::LaunchConfig* config,
               CUfunction function, void** parameters, void** extra);
LOAM_CUDA_BOTH(cuLaunchCooperativeKernel, _ptsz, CUfunction function, unsigned grid_x,
               unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
               unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters);
CUresult cuLaunchCooperativeKernelMultiDevice(loam::guard::cuda::LaunchParams* list, unsigned count,
                                              unsigned flags);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);
LOAM_CUDA_BOTH(cuLaunchHostFunc, _ptsz, CUstream stream, void (*function)(void*), void* data);
LOAM_CUDA_BOTH(cuGraphLaunch, _ptsz, CUgraphExec exec, CUstream stream);
LOAM_CUDA_BOTH(cuGraphUpload, _ptsz, CUgraphExec exec, CUstream stream);
CUresult cuGraphCreate(CUgraph* graph, unsigned flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                std::size_t count, loam::guard::cuda::MemAllocNodeParams* params);
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        std::size_t count, loam::guard::cuda::GraphNodeParams* params);
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const void* data, std::size_t count,
                           loam::guard::cuda::GraphNodeParams* params);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value);

// Copies and fills.
LOAM_CUDA_BOTH(cuMemcpy, _ptds, CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyPeer, _ptds, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
               CUcontext from_context, std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyHtoD_v2, _ptds, CUdeviceptr to, const void* from, std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyDtoH_v2, _ptds, void* to, CUdeviceptr from, std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyDtoD_v2, _ptds, CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyDtoA_v2, _ptds, CUarray to, std::size_t offset, CUdeviceptr from,
               std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyAtoD_v2, _ptds, CUdeviceptr to, CUarray from, std::size_t offset,
               std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyHtoA_v2, _ptds, CUarray to, std::size_t offset, const void* from,
               std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyAtoH_v2, _ptds, void* to, CUarray from, std::size_t offset,
               std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpyAtoA_v2, _ptds, CUarray to, std::size_t to_offset, CUarray from,
               std::size_t from_offset, std::size_t bytes);
LOAM_CUDA_BOTH(cuMemcpy2D_v2, _ptds, const loam::guard::cuda::Memcpy2d* copy);
LOAM_CUDA_BOTH(cuMemcpy2DUnaligned_v2, _ptds, const loam::guard::cuda::Memcpy2d* copy);
LOAM_CUDA_BOTH(cuMemcpy3D_v2, _ptds, const loam::guard::cuda::Memcpy3d* copy);
LOAM_CUDA_BOTH(cuMemcpy3DPeer, _ptds, const loam::guard::cuda::Memcpy3d* copy);
LOAM_CUDA_BOTH(cuMemcpyAsync, _ptsz, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyPeerAsync, _ptsz, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
               CUcontext from_context, std::size_t bytes, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyHtoDAsync_v2, _ptsz, CUdeviceptr to, const void* from, std::size_t bytes,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyDtoHAsync_v2, _ptsz, void* to, CUdeviceptr from, std::size_t bytes,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyDtoDAsync_v2, _ptsz, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyHtoAAsync_v2, _ptsz, CUarray to, std::size_t offset, const void* from,
               std::size_t bytes, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyAtoHAsync_v2, _ptsz, void* to, CUarray from, std::size_t offset,
               std::size_t bytes, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpy2DAsync_v2, _ptsz, const loam::guard::cuda::Memcpy2d* copy, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpy3DAsync_v2, _ptsz, const loam::guard::cuda::Memcpy3d* copy, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpy3DPeerAsync, _ptsz, const loam::guard::cuda::Memcpy3d* copy,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyBatchAsync, _ptsz, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
               std::size_t count, void* attributes, std::size_t* indices,
               std::size_t attribute_count, std::size_t* failed, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpyBatchAsync_v2, _ptsz, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
               std::size_t count, void* attributes, std::size_t* indices,
               std::size_t attribute_count, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpy3DBatchAsync, _ptsz, std::size_t count,
               loam::guard::cuda::Memcpy3dBatchOp* list, std::size_t* failed,
               unsigned long long flags, CUstream stream);
LOAM_CUDA_BOTH(cuMemcpy3DBatchAsync_v2, _ptsz, std::size_t count,
               loam::guard::cuda::Memcpy3dBatchOp* list, unsigned long long flags, CUstream stream);
LOAM_CUDA_BOTH(cuMemsetD8_v2, _ptds, CUdeviceptr to, unsigned char value, std::size_t count);
LOAM_CUDA_BOTH(cuMemsetD16_v2, _ptds, CUdeviceptr to, unsigned short value, std::size_t count);
LOAM_CUDA_BOTH(cuMemsetD32_v2, _ptds, CUdeviceptr to, unsigned value, std::size_t count);
LOAM_CUDA_BOTH(cuMemsetD2D8_v2, _ptds, CUdeviceptr to, std::size_t pitch, unsigned char value,
               std::size_t width, std::size_t height);
LOAM_CUDA_BOTH(cuMemsetD2D16_v2, _ptds, CUdeviceptr to, std::size_t pitch, unsigned short value,
               std::size_t width, std::size_t height);
LOAM_CUDA_BOTH(cuMemsetD2D32_v2, _ptds, CUdeviceptr to, std::size_t pitch, unsigned value,
               std::size_t width, std::size_t height);
LOAM_CUDA_BOTH(cuMemsetD8Async, _ptsz, CUdeviceptr to, unsigned char value, std::size_t count,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemsetD16Async, _ptsz, CUdeviceptr to, unsigned short value, std::size_t count,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemsetD32Async, _ptsz, CUdeviceptr to, unsigned value, std::size_t count,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemsetD2D8Async, _ptsz, CUdeviceptr to, std::size_t pitch, unsigned char value,
               std::size_t width, std::size_t height, CUstream stream);
LOAM_CUDA_BOTH(cuMemsetD2D16Async, _ptsz, CUdeviceptr to, std::size_t pitch, unsigned short value,
               std::size_t width, std::size_t height, CUstream stream);
LOAM_CUDA_BOTH(cuMemsetD2D32Async, _ptsz, CUdeviceptr to, std::size_t pitch, unsigned value,
               std::size_t width, std::size_t height, CUstream stream);
LOAM_CUDA_BOTH(cuMemPrefetchAsync, _ptsz, CUdeviceptr address, std::size_t bytes, CUdevice device,
               CUstream stream);
LOAM_CUDA_BOTH(cuMemPrefetchAsync_v2, _ptsz, CUdeviceptr address, std::size_t bytes,
               loam::guard::cuda::MemLocation location, unsigned flags, CUstream stream);

#undef LOAM_CUDA_BOTH
}
