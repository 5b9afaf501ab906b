// The system calls on descriptors and sockets. In an exploration (pirn/sim/explore.hpp) they are those of
// src/sim/system.cpp and file_calls.cpp, which have a network and a disk in memory. Elsewhere they are other names of
// the kernel's.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform::system {

#if defined(PIRN_SIM)
int socket(int domain, int type, int protocol) noexcept;
int socketpair(int domain, int type, int protocol, int* ends) noexcept;
int bind(int descriptor, const ::sockaddr* to, ::socklen_t size) noexcept;
int listen(int descriptor, int backlog) noexcept;
int accept4(int descriptor, ::sockaddr* from, ::socklen_t* size, int flags) noexcept;
int connect(int descriptor, const ::sockaddr* to, ::socklen_t size) noexcept;
int getsockname(int descriptor, ::sockaddr* name, ::socklen_t* size) noexcept;
int getpeername(int descriptor, ::sockaddr* name, ::socklen_t* size) noexcept;
int getsockopt(int descriptor, int level, int name, void* value, ::socklen_t* size) noexcept;
int setsockopt(int descriptor, int level, int name, const void* value, ::socklen_t size) noexcept;
ssize_t read(int descriptor, void* into, std::size_t size) noexcept;
ssize_t recv(int descriptor, void* into, std::size_t size, int flags) noexcept;
ssize_t write(int descriptor, const void* from, std::size_t size) noexcept;
ssize_t send(int descriptor, const void* from, std::size_t size, int flags) noexcept;
ssize_t sendmsg(int descriptor, const ::msghdr* message, int flags) noexcept;
ssize_t recvfrom(int descriptor, void* into, std::size_t size, int flags, ::sockaddr* from,
                 ::socklen_t* from_size) noexcept;
ssize_t sendto(int descriptor, const void* data, std::size_t size, int flags, const ::sockaddr* to,
               ::socklen_t to_size) noexcept;
int recvmmsg(int descriptor, ::mmsghdr* messages, unsigned count, int flags, ::timespec* timeout) noexcept;
int sendmmsg(int descriptor, ::mmsghdr* messages, unsigned count, int flags) noexcept;
ssize_t recvmsg(int descriptor, ::msghdr* message, int flags) noexcept;
ssize_t sendfile(int descriptor, int file, ::off_t* offset, std::size_t size) noexcept;
int shutdown(int descriptor, int how) noexcept;
int close(int descriptor) noexcept;
int fchmod(int descriptor, ::mode_t mode) noexcept;
int lstat(const char* path, struct ::stat* into) noexcept;
int unlink(const char* path) noexcept;
int poll(::pollfd* interests, ::nfds_t count, int milliseconds) noexcept;
int fcntl(int descriptor, int command, int argument = 0) noexcept;
int ioctl(int descriptor, unsigned long command, int* value) noexcept;
ssize_t readv(int descriptor, const ::iovec* parts, int count) noexcept;
ssize_t writev(int descriptor, const ::iovec* parts, int count) noexcept;
int pipe2(int* ends, int flags) noexcept;
int fstat(int descriptor, struct ::stat* into) noexcept;
int openat(int folder, const char* path, int flags, ::mode_t mode = 0) noexcept;
ssize_t preadv(int descriptor, const ::iovec* parts, int count, ::off_t offset) noexcept;
ssize_t preadv2(int descriptor, const ::iovec* parts, int count, ::off_t offset, int flags) noexcept;
ssize_t pwritev(int descriptor, const ::iovec* parts, int count, ::off_t offset) noexcept;
int fsync(int descriptor) noexcept;
int fdatasync(int descriptor) noexcept;
int ftruncate(int descriptor, ::off_t size) noexcept;
int statx(int folder, const char* path, int flags, unsigned mask, struct ::statx* into) noexcept;
void* mmap(void* at, std::size_t size, int protection, int flags, int descriptor, ::off_t offset) noexcept;
ssize_t getdents64(int descriptor, void* into, std::size_t size) noexcept;
int mkdir(const char* path, ::mode_t mode) noexcept;
int rename(const char* from, const char* to) noexcept;
int remove(const char* path) noexcept;
#else
using ::accept4;
using ::bind;
using ::close;
using ::connect;
using ::fchmod;
using ::fcntl;
using ::fdatasync;
using ::fstat;
using ::fsync;
using ::ftruncate;
using ::getdents64;
using ::getpeername;
using ::getsockname;
using ::getsockopt;
using ::ioctl;
using ::listen;
using ::lstat;
using ::mkdir;
using ::mmap;
using ::openat;
using ::pipe2;
using ::poll;
using ::preadv;
using ::preadv2;
using ::pwritev;
using ::read;
using ::readv;
using ::recv;
using ::recvfrom;
using ::recvmmsg;
using ::recvmsg;
using ::remove;
using ::rename;
using ::send;
using ::sendfile;
using ::sendmmsg;
using ::sendmsg;
using ::sendto;
using ::setsockopt;
using ::shutdown;
using ::socket;
using ::socketpair;
using ::statx;
using ::unlink;
using ::write;
using ::writev;
#endif

}  // namespace platform::system
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
