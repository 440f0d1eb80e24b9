package import AccessControl
package import MCP
import Model
import NIOCore

/// The artifacts of this broker, and those of the brokers to which it passed requests of the same client.
package struct TeamArtifacts: ArtifactReader {
    private let local: any ArtifactReader
    private let proxy: TeamProxy

    package init(_ local: any ArtifactReader, proxy: TeamProxy) {
        (self.local, self.proxy) = (local, proxy)
    }

    package func artifact(_ sha: String, for principal: Principal) async -> Artifact? {
        if let artifact = await local.artifact(sha, for: principal) { return artifact }
        guard sha.utf8.count == 64, sha.allSatisfy(\.isHexDigit), principal.member == nil else { return nil }
        for use in proxy.usage.uses(of: principal) {
            if let artifact = try? await artifact(sha, at: use) { return artifact }
        }
        return nil
    }

    private func artifact(_ sha: String, at use: HostUsage.Use) async throws -> Artifact? {
        guard let caller = use.caller.headerValue else { return nil }
        let request = HostRequest(
            method: "GET",
            target: "/v1/artifacts/\(sha)",
            headers: [(TeamCaller.header, caller)]
        )
        let response = try await proxy.connector.send(request, to: use.host)
        let type = response.headers.first { $0.name.lowercased() == "content-type" }?.value
        return Artifact(
            bytes: try await TeamProxy.bytes(of: response, from: use.host),
            mimeType: type ?? "application/octet-stream"
        )
    }
}
