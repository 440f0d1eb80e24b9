import Model

/// The ports of a phone's apps: joins what its log, its process list and its kernel report. Has no I/O.
///
/// A line of the log counts only if the user that wrote it owns the port, and while the process that wrote it runs. So a
/// line about the port of another app gives nothing.
struct AppPortTable: Sendable {
    /// The maximum number of ports, in total and of one app, and of apps whose lines are kept.
    static let limit = 64
    static let limitOfUser = 8
    static let announcingLimit = 32
    /// The number of times that the sockets are read after news. An app may log its URL before it listens.
    static let attempts = 12

    /// The lines that count, by user; the newest last.
    private var announcements: [UInt32: [AppAnnouncement]] = [:]
    /// The processes of debuggable apps.
    private var processes: [UInt32] = []
    /// The package of each user; nil if the user has none, or several.
    private var packages: [UInt32: SanitizedText?] = [:]
    private var owners: [UInt16: UInt32] = [:]
    /// Without news, the sockets are read once.
    private var attempt = attempts - 1
    private var hasNews = false

    /// The ports of apps, sorted.
    private(set) var ports: [PhonePort] = []

    /// Reads a line of the log. Returns true if the sockets should be read.
    mutating func read(_ line: LogLine) -> Bool {
        guard Self.isApp(line.user), let announcement = line.announcement else { return false }
        var known = announcements[line.user] ?? []
        guard known.last(where: { $0.port == announcement.port }) != announcement,
            !known.isEmpty || announcements.count < Self.announcingLimit
        else { return false }
        known.removeAll { $0.port == announcement.port }
        announcements[line.user] = (known + [announcement]).suffix(Self.limitOfUser)
        return addNews()
    }

    /// Sets the processes of debuggable apps. Returns true if the sockets should be read.
    mutating func set(processes: [UInt32]) -> Bool {
        guard self.processes != processes else { return false }
        self.processes = processes
        return addNews()
    }

    private mutating func addNews() -> Bool {
        (attempt, hasNews) = (0, true)
        return true
    }

    /// The processes whose users have to be read with the sockets.
    var wantedProcesses: Set<UInt32> {
        Set(processes).union(announcements.values.joined().map(\.processID))
    }

    /// Applies the sockets. `wanted` is the value of `wantedProcesses` when they were requested.
    mutating func apply(_ sockets: PhoneSockets, wanted: Set<UInt32>) {
        attempt += 1
        hasNews = false
        var debuggable = Set(processes.compactMap { sockets.processes[$0] }.filter(Self.isApp))
        for (user, lines) in announcements {
            let running = lines.filter { line in
                guard wanted.contains(line.processID) else {
                    hasNews = true
                    return true
                }
                guard sockets.processes[line.processID] == user else { return false }
                return attempt < Self.attempts || sockets.users[line.port] == user
            }
            announcements[user] = running.isEmpty ? nil : running
            if !running.isEmpty { debuggable.insert(user) }
        }
        owners = sockets.users.filter { debuggable.contains($0.value) }
        packages = packages.filter { debuggable.contains($0.key) }
        update()
    }

    private mutating func update() {
        var count: [UInt32: Int] = [:]
        let found = owners.sorted { $0.key < $1.key }.map { port, user in
            PhonePort(
                port: port,
                user: user,
                app: packages[user] ?? nil,
                announcement: announcements[user]?.first { $0.port == port }
            )
        }
        let ranked = found.filter { $0.announcement != nil } + found.filter { $0.announcement == nil }
        ports = ranked.filter { port in
            count[port.user, default: 0] += 1
            return count[port.user, default: 0] <= Self.limitOfUser
        }.prefix(Self.limit).sorted { $0.port < $1.port }
    }

    /// Counts an attempt to read the sockets that failed.
    mutating func skip() { (attempt, hasNews) = (attempt + 1, false) }

    /// The pause before the sockets are read again; nil if there is no reason until the next news.
    var pause: Duration? {
        guard hasNews || attempt < Self.attempts else { return nil }
        return attempt < 4 ? .milliseconds(250) : .seconds(1)
    }

    /// The users of ports whose package is not known yet.
    var usersWithoutPackage: Set<UInt32> { Set(ports.map(\.user).filter { packages[$0] == nil }) }

    mutating func set(package: SanitizedText?, of user: UInt32) {
        packages[user] = .some(package)
        update()
    }

    /// The first user of an app in the range of each person (AID_APP_START and AID_USER_OFFSET in AOSP
    /// android_filesystem_config.h).
    private static let firstApp: UInt32 = 10_000
    private static let usersOfPerson: UInt32 = 100_000

    private static func isApp(_ user: UInt32) -> Bool { user % usersOfPerson >= firstApp }

    /// The command that lists the packages of a user: `package:com.example.shop uid:10234`.
    static func packageCommand(of user: UInt32) -> String {
        "cmd package list packages --user \(user / usersOfPerson) --uid \(user)"
    }

    /// Returns the package in the output of `packageCommand`; nil if there is none, or if several share the user.
    static func package(in output: [UInt8], of user: UInt32) -> SanitizedText? {
        let names = listed(in: output).filter { $0.users.split(separator: ",").contains("\(user)") }.map(\.name)
        guard let name = names.first, names.count == 1, isPackage(name) else { return nil }
        return SanitizedText(name, limit: packageLimit)
    }

    /// The command that lists a package with its user; nil for a text that is the name of none.
    static func userCommand(of package: String) -> String? {
        isPackage(package[...]) ? "cmd package list packages -U \(package)" : nil
    }

    /// Returns the user of a package in the output of `userCommand`, which also has longer names.
    static func user(of package: String, in output: [UInt8]) -> UInt32? {
        listed(in: output).first { $0.name == package }.flatMap { UInt32($0.users) }
    }

    /// Reads lines of the form `package:NAME uid:USER,USER`.
    private static func listed(in output: [UInt8]) -> [(name: Substring, users: Substring)] {
        String(decoding: output, as: UTF8.self).split(whereSeparator: \.isNewline).compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 2, words[0].hasPrefix("package:"), words[1].hasPrefix("uid:") else { return nil }
            return (words[0].dropFirst(8), words[1].dropFirst(4))
        }
    }

    private static func isPackage(_ name: Substring) -> Bool {
        (1...packageLimit).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0.isLetterOrDigit || $0 == 0x2E || $0 == 0x5F }
    }

    /// The longest name of a package that is shown, as of a bundle identifier.
    private static let packageLimit = 155
}
