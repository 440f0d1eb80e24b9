/// The schemas of the activity, the use and the live screen.
enum ActivitySchemas {
    static let text = #"""
        "ActivityPage":{"type":"object","required":["schema","limit","oldest","newest","revision","entries"],"properties":{
          "schema":{"const":1},"limit":{"type":"integer","description":"the kept calls; 0 if the history is turned off"},
          "oldest":{"type":"integer"},"newest":{"type":"integer"},
          "revision":{"type":"integer","description":"the last change of any entry, for since"},
          "entries":{"type":"array","items":{"$ref":"#/components/schemas/ActivityEntry"}}}},
        "ActivityEntry":{"type":"object","required":["id","kind","at","endpoint","app"],"properties":{
          "id":{"type":"integer","description":"counted from 1 at the start of the broker"},"kind":{"enum":["call","change"]},
          "at":{"$ref":"#/components/schemas/Date"},"endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "app":{"type":"string"},"device":{"$ref":"#/components/schemas/UDID"},
          "client":{"$ref":"#/components/schemas/ActivityClient"},"tool":{"type":"string"},
          "trace":{"type":"string","description":"the trace ID of the call (W3C Trace Context)"},
          "arguments":{"type":"object","additionalProperties":true,"description":"without secrets, about 2 kB at most"},
          "waitMilliseconds":{"type":"integer","description":"the wait for a lease"},
          "durationMilliseconds":{"type":["integer","null"],"description":"null until the call ends"},
          "outcome":{"enum":["waiting","running","ok","error","refused","cancelled","unknown"]},
          "result":{"type":"object","required":["text","bytes"],"properties":{
            "text":{"type":"string","description":"the first 2 kB, without secrets"},"bytes":{"type":"integer"}}},
          "picture":{"type":"object","required":["bytes","type"],"properties":{
            "width":{"type":"integer"},"height":{"type":"integer"},"bytes":{"type":"integer"},"type":{"type":"string"}}},
          "text":{"type":"string","description":"of a change"},"state":{"type":"string"}}},
        "ActivityClient":{"type":"object","required":["name","kind"],"properties":{
          "name":{"type":"string"},"kind":{"enum":["user","grant","host"]},"grant":{"type":"string"},
          "agent":{"type":"string","description":"the name and version that the program gives itself"}}},
        "Usage":{"type":"object","required":["schema","since","devices","grants","hours"],"properties":{
          "schema":{"const":1},"since":{"$ref":"#/components/schemas/Date"},
          "devices":{"type":"array","items":{"type":"object","required":["udid","leasedSeconds","calls","failures"],"properties":{
            "udid":{"$ref":"#/components/schemas/UDID"},"name":{"type":"string"},"leasedSeconds":{"type":"integer"},
            "calls":{"type":"integer"},"failures":{"type":"integer"}}}},
          "grants":{"type":"array","items":{"type":"object","required":["id","leasedSeconds","calls","failures"],"properties":{
            "id":{"type":"string"},"name":{"type":"string"},"leasedSeconds":{"type":"integer"},
            "calls":{"type":"integer"},"failures":{"type":"integer"}}}},
          "hours":{"type":"array","items":{"type":"object","required":["at","calls","failures"],"properties":{
            "at":{"$ref":"#/components/schemas/Date"},"calls":{"type":"integer"},"failures":{"type":"integer"}}}}}},
        "Screen":{"type":"object","required":["schema","input","limits"],"properties":{
          "schema":{"const":1},"tool":{"type":"string","description":"the tool of the picture; absent without one"},
          "input":{"type":"array","items":{"enum":["tap","type","swipe","keys","delete","arrows"]},
            "description":"characters of a text that press a key: with keys, backspace and tab; with delete, U+007F; with arrows, U+F700 (up), U+F701 (down), U+F702 (left), U+F703 (right)"},
          "limits":{"type":"array","items":{"type":"string"},"description":"what is not possible, and why"}}},
        "ScreenPoint":{"type":"object","required":["x","y"],"additionalProperties":false,
          "description":"fractions of the picture","properties":{
          "x":{"type":"number","minimum":0,"maximum":1},"y":{"type":"number","minimum":0,"maximum":1}}},
        "ScreenInput":{"description":"one of tap, swipe and type","type":"object","additionalProperties":false,"properties":{
          "tap":{"$ref":"#/components/schemas/ScreenPoint"},
          "swipe":{"type":"object","required":["from","to"],"additionalProperties":false,"properties":{
            "from":{"$ref":"#/components/schemas/ScreenPoint"},"to":{"$ref":"#/components/schemas/ScreenPoint"},
            "milliseconds":{"type":"integer","minimum":50,"maximum":5000}}},
          "type":{"type":"object","required":["text"],"additionalProperties":false,"properties":{
            "text":{"type":"string","maxLength":2000}}}}}
        """#
}
