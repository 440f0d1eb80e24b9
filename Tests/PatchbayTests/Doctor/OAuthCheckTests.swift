import FoundationEssentials
import Model
import Testing

@testable import patchbay

@Suite struct OAuthCheckTests {
    private func remote(_ names: [String], own: [String]? = nil, state: RemoteStatus.State = .listening)
        -> RemoteStatus
    {
        RemoteStatus(
            state: state,
            address: state == .off ? nil : "0.0.0.0:7283",
            configured: true,
            pin: nil,
            reachable: [],
            connections: 0,
            refusedHandshakes: 0,
            problem: nil,
            certificates: RemoteCertificates(
                names: names,
                expiresAt: .distantFuture,
                authority: "",
                configured: own.map { .init(names: $0, expiresAt: .distantFuture) },
                problem: nil
            )
        )
    }

    @Test func `without api.oauth there is nothing to say`() {
        #expect(OAuthCheck.run(settings: [:], remote: remote(["lab"])) == nil)
        #expect(OAuthCheck.run(settings: ["api.oauth": false], remote: nil) == nil)
    }

    @Test func `without the remote listener, OAuth is for this machine, or for no client`() {
        for remote in [nil, remote(["lab"], state: .off)] {
            let local = OAuthCheck.run(settings: ["api.oauth": true], remote: remote)
            let none = OAuthCheck.run(settings: ["api.oauth": true, "api.tcp": false], remote: remote)
            #expect(local?.verdict == .ok && local?.detail.contains("patchbay remote on") == true)
            #expect(none?.verdict == .warn && none?.hint == "patchbay remote on")
        }
    }

    @Test(arguments: [["192.0.2.1", "::1"], ["localhost", "127.0.0.1"], []])
    func `a certificate without a host name is a warning`(names: [String]) {
        let settings: [String: JSON] = ["api.oauth": true]
        let made = OAuthCheck.run(settings: settings, remote: remote(names))
        #expect(made?.hint?.hasPrefix("set api.remote_names") == true)
        #expect(OAuthCheck.run(settings: settings, remote: remote(["lab"], own: names))?.verdict == .warn)
    }

    @Test func `a name is shown as an address, with what clients need for it`() {
        let settings: [String: JSON] = ["api.oauth": true]
        let made = OAuthCheck.run(settings: settings, remote: remote(["lab", "192.0.2.1"]))
        let own = OAuthCheck.run(settings: settings, remote: remote(["lab"], own: ["lab.example.com"]))

        #expect(made?.verdict == .ok)
        #expect(made?.detail.hasPrefix("https://lab:7283/mcp, for clients that trust it") == true)
        #expect(own == .ok("oauth", "https://lab.example.com:7283/mcp"))
    }
}
