import Glibc
import SystemIO

extension UsbmuxAddress {
    /// Connects. There is no deadline here: the caller has one, and cancels.
    func connect(clock: any Clock<Duration>) async throws -> Descriptor {
        switch self {
        case .unix(let path):
            return try await connect(to: .unix(path: path), clock: clock)
        case .tcp(let host, let port):
            var failure = UsbmuxError.absent(self, errno: EADDRNOTAVAIL)
            for address in try await HostResolver.addresses(of: host, port: port) {
                do {
                    return try await connect(to: address, clock: clock)
                } catch let error as UsbmuxError {
                    failure = error
                }
            }
            throw failure
        }
    }

    private func connect(to address: SocketAddress, clock: any Clock<Duration>) async throws -> Descriptor {
        var pause = Duration.milliseconds(1)
        while true {
            do {
                return try await address.connect(within: .seconds(30), clock: clock)
            } catch SocketError.failed(_, _, EAGAIN) {
                // usbmuxd's accept queue is full (it holds 5 in 1.1.1). The kernel tells nobody when there is room again,
                // so this is asked again.
                try await clock.sleep(for: pause)
                pause = min(pause * 2, .milliseconds(50))
            } catch let error as SocketError {
                throw said(error)
            }
        }
    }

    /// What the socket said, in the words of this module.
    private func said(_ error: SocketError) -> UsbmuxError {
        switch error {
        case .failed(_, _, let code) where [ENOENT, ENOTDIR, ECONNREFUSED].contains(code): .absent(self, errno: code)
        case .failed(_, _, let code) where [EACCES, EPERM].contains(code): .denied(self)
        default: .failed(call: "connecting to usbmuxd at \(self)", words: "\(error)")
        }
    }
}
