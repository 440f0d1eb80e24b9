import ArgumentParser
import Client
import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing
import Transport

@testable import patchbay

@Suite(.scratchFolder) struct TeamCommandTests {
    private let scratch = ScratchFolder.current
    private let now = Date(timeIntervalSince1970: 1_700_000_000)

    private func status(certificateDays days: Double = 3_650) throws -> TeamStatus {
        let key = try CertificateKey().pin
        let (lab1, lab2): (HostName, HostName) = ("lab1", "lab2")
        let host = TeamHost(name: lab2, version: "1.2", addresses: ["10.0.0.8:7284"], since: now - 60, generation: 1)
        return TeamStatus(
            team: SanitizedText("lab"),
            host: lab1,
            authority: lab1,
            key: key,
            certificateExpiresAt: now.addingTimeInterval(days * 86_400),
            hosts: [
                TeamHostStatus(TeamMember(name: lab1, key: key, addedAt: now), host: nil),
                TeamHostStatus(TeamMember(name: lab2, key: key, addedAt: now), host: host),
            ],
            etcd: [
                TeamRegistryServer(url: "https://10.0.0.5:2379", problem: nil),
                TeamRegistryServer(url: "https://10.0.0.6:2379", problem: "no route"),
            ]
        )
    }

    @Test func `status is the default command of team`() throws {
        #expect(try Patchbay.parseAsRoot(["team", "--json"]) is TeamStatusCommand)
        #expect(try Patchbay.parseAsRoot(["team", "join", "-", "--host", "lab2"]) is TeamJoinCommand)
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["team", "remove", "lab 2"]) }
    }

    @Test func `the files of an etcd administrator belong together`() {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["team", "init", "lab", "--etcd-ca", "ca.pem"]) }
        #expect(throws: Never.self) {
            try Patchbay.parseAsRoot([
                "team", "init", "lab", "--etcd-ca", "ca.pem", "--etcd-cert", "admin.pem", "--etcd-key", "key.pem",
            ])
        }
    }

    @Test func `the status names the servers with their problems, and the state of each host`() throws {
        let text = TeamStatusText(try status(), now: now)

        #expect(text.lines.contains("team         lab"))
        #expect(text.lines.contains("host         lab1, with the certificate authority"))
        #expect(text.lines.contains("etcd         https://10.0.0.5:2379 answers"))
        #expect(text.lines.contains("etcd         https://10.0.0.6:2379 failed: no route"))
        let table = text.table.text(width: nil, isColoured: false)
        #expect(table.contains("lab1  offline"))
        #expect(table.contains("lab2  online "))
    }

    @Test(arguments: [(59, true), (61, false)])
    func `a certificate that ends within 60 days is named with the remedy`(days: Int, isNamed: Bool) throws {
        let lines = TeamStatusText(try status(certificateDays: Double(days)), now: now).lines

        #expect(lines.contains("renew it: patchbay team init lab") == isNamed)
    }

    @Test func `a broker without a team names the first step`() {
        #expect(TeamStatusText(TeamStatus()).lines == ["team         none", "try: patchbay team init NAME"])
        let left = TeamStatusText(TeamStatus(restartNeeded: true)).lines
        #expect(left.last == TeamStatusText.restart)
    }

    @Test func `a problem is shown with its next step, and the name of a team is one word of a command`() throws {
        var status = try status(certificateDays: 1)
        status.team = SanitizedText("My Team")
        (status.problem, status.hint) = ("lab1 was removed from the team", "patchbay team leave")
        let lines = TeamStatusText(status, now: now).lines

        #expect(lines.suffix(2) == ["problem      lab1 was removed from the team", "try: patchbay team leave"])
        #expect(lines.contains("renew it: patchbay team init 'My Team'"))
    }

    @Test func `an unreachable registry is named with the time`() throws {
        var status = try status()
        status.staleSince = now - 11
        let line = "registry     unreachable for 11 s; the hosts may be outdated"
        #expect(TeamStatusText(status, now: now).lines.contains(line))
    }

    @Test func `a host that leaves has to be removed, unless the team has removed it`() throws {
        var status = try status()
        status.host = HostName("lab2")
        #expect(TeamLeaveCommand.text(after: status).last == "On lab1, remove this host: patchbay team remove lab2")
        status.hosts.removeLast()
        #expect(TeamLeaveCommand.text(after: status) == ["Left the team lab. The broker goes on without it."])
        status.host = status.authority
        #expect(TeamLeaveCommand.text(after: status).count == 1)
    }

    @Test func `a file in place of the folder of certificates is named`() async throws {
        let path = scratch.file("afile")
        try Data().write(to: URL(filePath: path))
        let error = #expect(throws: CLIError.self) { try EtcdNodeFiles(folder: path, name: "etcd1").makeFolder() }
        #expect(error?.message == "\(path) is a file, not a folder")
    }

    @Test func `a refused certificate leaves no key behind`() async throws {
        let path = scratch.file("certs")
        let command = try TeamCertificateCommand.parse([
            "etcd1", "10.0.0.5", "--out", path, "--socket", scratch.file("no-broker"),
        ])

        await #expect(throws: ClientError.self) { try await command.run() }

        #expect(!FileManager.default.fileExists(atPath: path))
    }

    private let node = EtcdNode(name: "etcd2", address: "10.0.0.6")

    @Test func `the options of etcd name all files, the other nodes, and the only name that a node may have`() throws {
        let others = [try EtcdNode(argument: "etcd3=fd00::7"), try EtcdNode(argument: "etcd1=10.0.0.5")]
        let lines = node.environment(others: others, isNew: false).split(separator: "\n")

        #expect(lines.contains(#"ETCD_CERT_FILE="/etc/etcd-patchbay/etcd2.pem""#))
        #expect(lines.contains(#"ETCD_PEER_KEY_FILE="/etc/etcd-patchbay/etcd2-key.pem""#))
        #expect(lines.contains(#"ETCD_CLIENT_CERT_AUTH="true""#))
        #expect(lines.contains(#"ETCD_PEER_TRUSTED_CA_FILE="/etc/etcd-patchbay/ca.pem""#))
        #expect(lines.contains(#"ETCD_PEER_CERT_FILE="/etc/etcd-patchbay/etcd2-peer.pem""#))
        #expect(lines.contains(#"ETCD_PEER_CERT_ALLOWED_CN="etcd.peer""#))
        #expect(lines.contains(#"ETCD_INITIAL_CLUSTER_STATE="existing""#))
        let cluster = "etcd1=https://10.0.0.5:2380,etcd2=https://10.0.0.6:2380,etcd3=https://[fd00::7]:2380"
        #expect(lines.contains("ETCD_INITIAL_CLUSTER=\"\(cluster)\""))
    }

    @Test func `a node listens at the port that the team has for its address`() {
        let servers = ["https://10.0.0.5:2379", "https://10.0.0.6:12379", "https://[fd00::7]:22379", "https://etcd"]
        #expect(EtcdNode.port(of: ["node", "10.0.0.6"], among: servers) == 12_379)
        #expect(EtcdNode.port(of: ["fd00::7"], among: servers) == 22_379)
        #expect(EtcdNode.port(of: ["etcd"], among: servers) == 2_379)
        #expect(EtcdNode.port(of: ["10.0.0.9"], among: servers) == 2_379)

        let node = EtcdNode(name: "etcd2", address: "10.0.0.6", clientPort: 12_379)
        let lines = node.environment(others: [], isNew: true).split(separator: "\n")
        #expect(lines.contains(#"ETCD_LISTEN_CLIENT_URLS="https://0.0.0.0:12379""#))
        #expect(lines.contains(#"ETCD_ADVERTISE_CLIENT_URLS="https://10.0.0.6:12379""#))
    }

    @Test func `three commands install a node, here or over ssh`() {
        let here = node.installation(from: "my certs/etcd2", isHere: true)
        let there = node.installation(from: "certs/etcd2", isHere: false)

        #expect(here.count == 3 && there.count == 3)
        #expect(here[1] == "tar -C 'my certs/etcd2' -c . | sudo sh -c 'tar -C /etc/etcd-patchbay -x'")
        #expect(there[1] == "tar -C certs/etcd2 -c . | ssh root@10.0.0.6 'tar -C /etc/etcd-patchbay -x'")
        #expect(EtcdNode(name: "etcd1", address: "127.0.0.1").isOnThisMachine)
        #expect(!EtcdNode(name: "etcd1", address: "192.0.2.1").isOnThisMachine)
    }

    @Test(arguments: [["etcd2=10.0.0.6", "etcd2=10.0.0.7"], ["etcd1=10.0.0.6"], ["10.0.0.6"]])
    func `each node of a cluster has a name of its own`(nodes: [String]) {
        let words = ["team", "certificate", "etcd1", "10.0.0.5", "--out", "certs"] + nodes.flatMap { ["--node", $0] }

        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(words) }
    }
}
