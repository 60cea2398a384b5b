# The summary as a table for people.
def left(width): . + (" " * ([width - length, 0] | max) // "");
def right(width): (" " * ([width - length, 0] | max) // "") + .;
def number: if . >= 1000 then round | tostring elif . >= 10 then (. * 10 | round) / 10 | tostring else (. * 100 | round) / 100 | tostring end;
def row($name; $value; $range; $server; $all; $ratio; $ratios; $floor; $mark):
  ($name | left(10)) + ($value | right(10)) + ($range | right(18)) + ($server | right(12)) + ($all | right(12))
  + ($ratio | right(9)) + ($ratios | right(14)) + ($floor | right(8)) + $mark
  | sub(" +$"; "");

row(""; "median"; "lowest..highest"; "server us"; "+ client us"; "ours/it"; "by round"; "floor"; ""),
( .jobs[]
  | "\(.title), \(.unit)",
    ( .systems[]
      | row("  " + .system; .value.median | number; "\(.value.min | number)..\(.value.max | number)";
            .server_us | number; .all_us | number;
            if .ratio then .ratio * 100 | round / 100 | "\(.)x" else "" end;
            if .ratio then "\(.ratios.min | number)..\(.ratios.max | number)" else "" end;
            if .floor then "\(.floor)x" else "" end;
            if .floor and .ratio < .floor then "  MISSED" else "" end) ) )
