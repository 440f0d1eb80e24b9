import Glibc
import SystemIO

/// What a client hears whose request is not let through: a whole HTTP answer, then the end.
enum ForbiddenResponse {
    static func response(to refusal: BrowserGuard.Refusal) -> [UInt8] {
        let text = "Patchbay: \(refusal).\n"
        let lines = [
            "HTTP/1.1 403 Forbidden", "Content-Type: text/plain; charset=utf-8", "Content-Length: \(text.utf8.count)",
            "Connection: close", "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "", text,
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// Says it, and reads on until the client closes or the time is over: a close with unread bytes would be a reset, which
    /// may take the answer away from the client (RFC 9112, section 9.6).
    static func say(_ refusal: BrowserGuard.Refusal, to client: CInt, limit: Duration, clock: any Clock<Duration>) async
    {
        let response = response(to: refusal)
        // A fresh connection has room for it.
        _ = response.withUnsafeBytes { send(client, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        shutdown(client, CInt(SHUT_WR))
        _ = try? await withDeadline(limit, clock: clock) {
            while true {
                // Of TCP, thrown away in the kernel (MSG_TRUNC; tcp(7)).
                let count = recv(client, nil, 1 << 20, CInt(MSG_TRUNC))
                if count > 0 {
                    try Task.checkCancellation()
                } else if count < 0, errno == EAGAIN {
                    try await Poller.shared.wait(for: .readable, of: client)
                } else {
                    return
                }
            }
        }
    }
}
