// tokio's runtime of one thread: a task for each connection; started with a port or the path of a Unix socket.
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buffer = vec![0; 16384];
    while let Ok(got) = stream.read(&mut buffer).await {
        if got == 0 || stream.write_all(&buffer[..got]).await.is_err() {
            return;
        }
    }
}

async fn serve(address: String) -> std::io::Result<()> {
    if address.starts_with('/') {
        let listener = UnixListener::bind(address)?;
        loop {
            tokio::spawn(echo(listener.accept().await?.0));
        }
    }
    let listener = TcpListener::bind(format!("127.0.0.1:{address}")).await?;
    loop {
        let stream = listener.accept().await?.0;
        stream.set_nodelay(true)?;
        tokio::spawn(echo(stream));
    }
}

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).expect("an address");
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(serve(address))
}
