/// What an image may be, and what it is to become.
package struct ImageLimits: Hashable, Sendable {
    /// The most pixels of an image that is opened; each takes four bytes while it is. A display of 6,016 x 3,384 is below.
    package var pixels = 32 << 20
    /// The longest edge of an image that is opened.
    package var edge = 32_768
    /// The most bytes of an image that is opened: what an app may answer.
    package var bytes = 32 << 20
    /// The most bytes of what is made. As base64 that is below the 1,048,576 characters at which clients refuse a result.
    package var result = 700_000

    package init() {}
}
