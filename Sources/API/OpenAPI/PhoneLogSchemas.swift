/// The schemas of the logs of phones.
enum PhoneLogSchemas {
    static let text = #"""
        "PhoneLog":{"type":"object","required":["schema","lines"],"properties":{
          "schema":{"const":1},"lines":{"type":"array","items":{"$ref":"#/components/schemas/PhoneLogLine"}}}},
        "PhoneLogLine":{"type":"object","required":["time","uid","pid","tid","level","tag","text"],"properties":{
          "time":{"type":"string","description":"the phone's local time, without the year"},
          "uid":{"type":"string","description":"the user that wrote the line: a number, or the name of a system user"},
          "pid":{"type":"integer"},"tid":{"type":"integer"},"level":{"type":"string","description":"V, D, I, W, E or F"},
          "tag":{"type":"string"},"text":{"type":"string","description":"without secrets, at most 8 KiB"}}}
        """#
}
