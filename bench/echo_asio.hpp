// The sockets of Boost.Asio's servers in the workload `echo`: of TCP or Unix, and bound to io_context, as the executor
// that erases its type costs them some per cent.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include "echo_listen.hpp"

namespace bench {

using asio_executor = boost::asio::io_context::executor_type;
using asio_socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, asio_executor>;
using asio_acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol, asio_executor>;

inline asio_acceptor asio_listen(boost::asio::io_context& context, const char* text) {
  return {context, {address(text).family, 0}, listen_at(text)};
}

}  // namespace bench
