@testable import Team
import FoundationEssentials
import Model
import TestSupport
import Testing

/// The registry on a real etcd with a host that writes more than one answer can have.
@Suite(.needs(.etcd), .timeLimit(.minutes(1)), .scratchFolder) struct EtcdListingTests {
    private let scratch = ScratchFolder.current

    /// The maximum value of etcd with its default limit of a request is a little larger.
    private static let value = [UInt8](repeating: UInt8(ascii: "x"), count: 1_500_000)

    private func member(_ name: String) throws -> TeamMember {
        guard let host = HostName(name), let key = KeyPin(digest: Array(name.utf8) + Array(repeating: 0, count: 28))
        else {
            throw TestSupportError("\(name) is no host name of 4 bytes")
        }
        return TeamMember(name: host, key: key, addedAt: Date(timeIntervalSince1970: 0))
    }

    @Test(arguments: ["ep/lab3/", "claim/"]) func `46 entries of 1.5 MB hide no other host`(prefix: String) async throws
    {
        let store = try await EtcdCluster(in: scratch).store()
        let authority = TeamAuthority(store: store)
        try await authority.create(SanitizedText("lab"))
        for name in ["lab1", "lab2", "lab3"] {
            try await authority.add(try member(name))
            try await store.put("\(TeamKey.endpoints)\(name)/shop")
            try await store.put("\(TeamKey.hosts)\(name)")
        }
        let part = TeamKey.root + prefix
        for number in 0..<46 {
            let put = TeamStoreWrite.put(key: "\(part)junk\(number)", value: Self.value, sessionLease: nil)
            _ = try await store.write([put], if: nil)
        }
        var listing = TeamListing(store)

        let keys = try await listing.list().entries.map(\.key)

        #expect(listing.missing == [part])
        #expect(keys.count == (prefix == "claim/" ? 10 : 9))
        #expect(keys.contains("\(TeamKey.endpoints)lab2/shop"))
        await #expect { try await store.list(part) } throws: { error in
            if case TeamStoreError.tooLarge(let bytes) = error { bytes > 46 * Self.value.count } else { false }
        }

        let lab3 = try member("lab3").name
        try await authority.remove(lab3)
        try await authority.removeClaims(of: lab3)
        #expect(try await listing.list().entries.count == 7)
        #expect(listing.missing.isEmpty)
    }
}
