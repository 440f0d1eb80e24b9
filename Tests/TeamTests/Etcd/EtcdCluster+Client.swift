import Logging
import Team
import TestSupport

extension EtcdCluster {
    /// Returns a client with the certificate of a user.
    func client(_ user: String = "root", endpoints: [String]? = nil) async throws -> EtcdClient {
        let credentials = try await certificates.issue(user)
        let configuration = try EtcdConfiguration(
            endpoints: (endpoints ?? self.endpoints).compactMap { EtcdEndpoint($0) },
            authority: certificates.authority,
            certificate: credentials.certificate,
            key: credentials.key
        )
        return EtcdClient(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    func store(_ user: String = "root", endpoints: [String]? = nil) async throws -> EtcdStore {
        EtcdStore(try await client(user, endpoints: endpoints))
    }
}

extension TeamStore {
    func put(_ key: String, _ text: String = "", sessionLease: SessionLease.ID? = nil) async throws(TeamStoreError) {
        _ = try await write([.put(key: key, value: Array(text.utf8), sessionLease: sessionLease)], if: nil)
    }
}

extension TeamStoreEntry {
    var text: String { "\(key)=\(String(decoding: value, as: UTF8.self))" }
}
