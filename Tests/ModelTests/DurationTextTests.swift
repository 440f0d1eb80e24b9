import Model
import Testing

@Suite struct DurationTextTests {
    @Test(arguments: [
        ("90s", 90, "90s"), ("10m", 600, "10m"), ("60m", 3_600, "1h"), ("30d", 2_592_000, "30d"), ("0s", 0, "0s"),
    ])
    func `a duration is a number with a unit`(text: String, seconds: Int, shown: String) {
        #expect(DurationText(text)?.seconds == seconds)
        #expect(DurationText(text)?.description == shown)
    }

    @Test(arguments: ["", "s", "90", "-1s", "1.5h", "1 s", "1w", "9223372036854775807d", "١m"])
    func `any other text is no duration`(text: String) { #expect(DurationText(text) == nil) }

    @Test(arguments: [("64MB", 64_000_000), ("2GB", 2_000_000_000), ("5kB", 5_000)])
    func `a size is a number with a unit`(text: String, bytes: Int) {
        #expect(ByteCountText(text)?.bytes == bytes)
        #expect(ByteCountText(text)?.description == text)
    }

    @Test(arguments: ["", "MB", "5", "5M", "-5MB", "9223372036854775807GB"])
    func `any other text is no size`(text: String) { #expect(ByteCountText(text) == nil) }
}
