package import AccessControl
package import Apps
import Client
import Model
import SystemIO

/// The artifacts of this broker, and those of the brokers to which it passed requests of the same client.
package struct TeamArtifacts: ArtifactReader {
    private let local: any ArtifactReader
    private let proxy: TeamProxy
    private let clock: any Clock<Duration>

    /// The time in which one host must send the artifact.
    private static let limit = Duration.seconds(30)

    package init(
        _ local: any ArtifactReader,
        proxy: TeamProxy,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        (self.local, self.proxy, self.clock) = (local, proxy, clock)
    }

    package func artifact(_ sha: String, for principal: Principal) async -> Artifact? {
        if let artifact = await local.artifact(sha, for: principal) { return artifact }
        guard sha.utf8.count == 64, sha.allSatisfy(\.isHexDigit), principal.member == nil else { return nil }
        let uses = proxy.usage.uses(of: principal)
        return await withTaskGroup(of: Artifact?.self) { group in
            // All hosts are asked at once, so that a host without an answer does not delay the others.
            for host in Set(uses.map(\.host)) {
                group.addTask { await artifact(sha, of: uses.filter { $0.host == host }) }
            }
            for await case let artifact? in group {
                group.cancelAll()
                return artifact
            }
            return nil
        }
    }

    /// Returns the artifact of one host, which is asked as each of the clients in turn.
    private func artifact(_ sha: String, of uses: [HostUsage.Use]) async -> Artifact? {
        let found = try? await withTimeout(Self.limit, clock: clock) { () -> Artifact? in
            for use in uses {
                try Task.checkCancellation()
                if let artifact = try? await self.artifact(sha, at: use) { return artifact }
            }
            return nil
        }
        return found ?? nil
    }

    /// Returns the artifact of a host. Bytes that do not have the requested hash are refused.
    private func artifact(_ sha: String, at use: HostUsage.Use) async throws -> Artifact? {
        let broker = HostAPI(host: use.host) { [connector = proxy.connector] request in
            let request = try request.naming(use.caller, at: use.host)
            return try await connector.send(request, to: use.host, within: TeamProxy.standardTimeout)
        }
        let (bytes, type) = try await broker.tools.artifact(sha)
        guard Artifact.sha(of: bytes) == sha else { return nil }
        return Artifact(bytes: bytes, mimeType: ResultSizeLimiter.mimeType(type.map(JSON.string)))
    }
}
