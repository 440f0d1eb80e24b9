package import Model

extension RawPhoneLogLine {
    /// A line of an app with the user 10234.
    package static func sample(_ text: String, tag: String = "Shop") -> RawPhoneLogLine {
        RawPhoneLogLine(
            time: "11-26 10:00:00.000",
            user: "10234",
            processID: 47,
            threadID: 48,
            level: "I",
            tag: tag,
            text: text
        )
    }
}
