// tokio's runtime of one thread: a task that sends datagrams back one by one, since tokio has no batches.
use tokio::net::UdpSocket;

async fn serve(port: String) -> std::io::Result<()> {
    let socket = UdpSocket::bind(format!("127.0.0.1:{port}")).await?;
    let mut buffer = [0; 2048];
    loop {
        let (got, from) = socket.recv_from(&mut buffer).await?;
        let _ = socket.send_to(&buffer[..got], from).await;
    }
}

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("a port");
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(serve(port))
}
