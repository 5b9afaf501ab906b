// may_minihttp: stackful coroutines of may on one worker; usage: may-minihttp PORT
use may_minihttp::{HttpServer, HttpService, Request, Response};

#[derive(Clone)]
struct Hello;

impl HttpService for Hello {
    fn call(&mut self, request: Request, response: &mut Response) -> std::io::Result<()> {
        if request.path() == "/hello" {
            response.header("Content-Type: text/plain").body("Hello, world!\n");
        } else {
            response.status_code(404, "Not Found");
        }
        Ok(())
    }
}

fn main() -> std::io::Result<()> {
    may::config().set_workers(1);
    let port = std::env::args().nth(1).expect("a port");
    HttpServer(Hello).start(format!("127.0.0.1:{port}"))?.join().expect("a server that does not end");
    Ok(())
}
