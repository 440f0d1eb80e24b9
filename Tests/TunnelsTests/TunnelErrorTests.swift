import Model
import Testing

@testable import Tunnels

@Suite struct TunnelErrorTests {
    @Test(arguments: [
        (ListenAddress.tcp(host: "192.0.2.1", port: 7000), "this machine does not have that address"),
        (.unix(path: "/nonexistent/x"), "its folder does not exist"),
        (.unix(path: "/tmp"), "/tmp exists and is not a socket"),
    ])
    func `every listen error is a conflict with a hint of its own`(local: ListenAddress, reason: String) {
        let error = #expect(throws: TunnelError.self) { try TunnelSocketBinder.listen(on: local) }

        #expect(error?.problem.code == .conflict)
        #expect(error?.problem.detail.contains(reason) == true, "\(error?.problem.detail ?? "")")
        #expect(error?.problem.hint?.hasPrefix("choose another") == true)
    }

    @Test func `a host name is rejected as a listen address`() {
        let error = #expect(throws: TunnelError.self) {
            try TunnelSocketBinder.listen(on: .tcp(host: "example.com", port: 7000))
        }

        #expect(error?.problem.code == .badRequest)
        #expect(error?.problem.hint?.contains("ip address") == true)
    }
}
