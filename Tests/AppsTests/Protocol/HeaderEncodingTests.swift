import Testing

@testable import Apps

@Suite struct HeaderEncodingTests {
    @Test(arguments: [
        ("us-west1", "us-west1"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("=?base64??=", ""),
        ("=?BASE64?SGk=?=", "=?BASE64?SGk=?="),
        ("=?base64?=", "=?base64?="),
    ])
    func `the examples of the specification are decoded`(header: String, value: String) {
        #expect(HeaderEncoding.decode(header) == value)
    }

    @Test(arguments: ["=?base64?SGk?=", "=?base64?SGl=?=", "=?base64?/w==?=", "=?base64?SG k=?=", "tést", "a\u{1}b"])
    func `an invalid encoding is rejected`(header: String) { #expect(HeaderEncoding.decode(header) == nil) }
}
