import ArgumentParser
import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct AskCommandTests {
    private func options(_ words: String...) throws -> PermissionOptions {
        try #require(try Patchbay.parseAsRoot(["ask"] + words) as? AskCommand).permissions
    }

    @Test func `a request has the permissions of the options, with full endpoint IDs`() throws {
        let plain = try options().permissionsWithoutList()
        #expect(plain.allow(.endpointCall) && plain.allow(.tunnelOpen) && plain.selector == .all)
        let limited = try options("--read-only", "--endpoint", "shop-iphone").permissionsWithoutList()
        #expect(limited.selector == .endpoints(["shop-iphone"]))
        #expect(limited.tools == .readOnly && !limited.allow(.tunnelOpen))
        let app = try options("--app", "com.example.shop", "--scope", "registry.read").permissionsWithoutList()
        #expect(app == Permissions([.registryRead], on: .bundles(["com.example.shop"])))
    }

    @Test func `a short name cannot be looked up without a grant and is refused`() throws {
        let error = #expect(throws: CLIError.self) { try options("--endpoint", "My Shop").permissionsWithoutList() }
        #expect(error?.status == .usage && error?.hint?.contains("full ID") == true)
    }

    private let request = AccessRequest(
        userCode: "WDJB-MJHT",
        requester: .process(uid: 1_000, pid: 7, executable: SanitizedText("/usr/bin/patchbay")),
        name: SanitizedText("agent"),
        permissions: Permissions([.registryRead], on: .all),
        expiresAt: SampleEndpoints.date
    )

    @Test func `status shows a pending request with the command that approves it`() {
        let status = BrokerStatus(
            version: "1",
            pid: 7,
            startedAt: SampleEndpoints.date,
            revision: 1,
            endpoints: [:],
            devices: 0,
            tunnels: 0,
            sources: []
        )
        let text = StatusCommand.text(status, requests: [request], socket: "/x", isColoured: false)

        #expect(
            text.hasPrefix(
                """
                request: "agent" (user 1000, /usr/bin/patchbay (process 7)) asks for registry.read on all, code WDJB-MJHT
                try: patchbay requests

                broker
                """
            )
        )
    }

    @Test func `a request that ended without an answer is temporary, and the next one has another code`() {
        let error = AccessRequester.expired(request)
        #expect(error.status == .temporary && error.hint?.hasPrefix("patchbay ask") == true)
    }
}
