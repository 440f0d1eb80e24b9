import FoundationEssentials
import Model
import Testing

@Suite struct JSONCodingTests {
    @Test(arguments: [0, 0.001, 0.123, 0.25, 0.499, 0.5, 0.999])
    func `a date is encoded and decoded with millisecond precision`(fraction: Double) throws {
        let date = Date(timeIntervalSince1970: 1_795_000_000 + fraction)

        let back = try JSONCoding.decoder().decode([Date].self, from: JSONCoding.encoder().encode([date]))

        #expect(abs(back[0].timeIntervalSince(date)) < 0.000_1)
        #expect(JSONCoding.text(of: back[0]) == JSONCoding.text(of: date))
    }

    @Test func `a date is printed with milliseconds and parsed with or without them`() throws {
        #expect(JSONCoding.text(of: Date(timeIntervalSince1970: 0.25)) == "1970-01-01T00:00:00.250Z")
        #expect(JSONCoding.date(from: "1970-01-01T00:00:02Z") == Date(timeIntervalSince1970: 2))
        #expect(JSONCoding.date(from: "yesterday") == nil)
    }

    @Test func `keys are sorted and slashes are not escaped`() throws {
        let data = try JSONCoding.encoder().encode(["b": "/tmp/x", "a": "1"])

        #expect(String(decoding: data, as: UTF8.self) == #"{"a":"1","b":"/tmp/x"}"#)
    }
}
